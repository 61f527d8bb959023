# Writes clones.json and clones.csv: people cloned into "start within 60 days" and "do not", cut into
# intervals of 15 days, weighted by glm, and a weighted Cox model. Starts and deaths are at any day.
# Run in this folder.
suppressMessages({library(survival);library(splines)})
source("../json.R")
vec<-function(x) structure(as.numeric(x),array=TRUE)
set.seed(4)
n<-200; grace<-60; window<-30
severity<-round(rnorm(n),2); age<-round(rnorm(n),2)
start<-rgeom(n,plogis(-4+.8*severity))+1; death<-ceiling(rexp(n,.004*exp(.7*severity+.3*age)))
days<-pmin(death,240); died<-as.integer(death<=240); start[start>=days]<-NA
start[1:3]<-c(60,30,60); days[1:3]<-c(150,120,60); died[1:3]<-c(1,0,1) # at the ends of the period
people<-data.frame(id=1:n,severity,age,days,died,start)
write.csv(people,"clones.csv",row.names=FALSE,na="")
rows<-NULL
for(i in 1:n) for(arm in 1:0){
  s<-if(is.na(start[i])) Inf else start[i]
  leaves_at<-if(arm==1) (if(s<=grace) Inf else grace) else (if(s<=grace) s else Inf)
  cuts<-seq(15,225,15); from<-c(0,cuts[cuts<days[i]]); to<-c(cuts[cuts<days[i]],days[i])
  for(k in seq_along(from)){
    if(from[k]>=leaves_at) break
    last<-to[k]==days[i]; stop<-min(to[k],leaves_at)
    event<-as.integer(died[i]==1&&last&&stop==days[i])
    leaves<-as.integer(leaves_at<=to[k]&&event==0)
    can<-if(arm==1) stop==grace&&s>grace-window&&event==0 else from[k]<grace
    rows<-rbind(rows,data.frame(id=i,arm,entry=from[k],time=stop,event,leaves,can,severity=severity[i],age=age[i]))
    if(leaves) break
  }
}
stay<-rep(1,nrow(rows))
for(arm in 0:1){
  own<-rows$arm==arm&rows$can&rows$event==0
  rhs<-if(arm==1) "severity+age" else "ns(entry,df=2)+severity+age"
  f<-glm(as.formula(paste("leaves ~",rhs)),data=rows[own,],family=binomial,control=glm.control(epsilon=1e-14,maxit=100))
  stay[own]<-1-fitted(f)
}
weight<-1/ave(stay,rows$id,rows$arm,FUN=function(v) c(1,cumprod(v)[-length(v)]))
f<-coxph(Surv(entry,time,event)~arm,data=cbind(rows,weight),weights=weight,cluster=id,ties="breslow",
  control=coxph.control(eps=1e-11,iter.max=100,toler.chol=1e-14))
curve<-function(arm) summary(survfit(Surv(entry,time,event)~1,data=cbind(rows,weight)[rows$arm==arm,],weights=weight),times=c(90,200))$surv
writeLines(json(list(R=R.version.string,survival=as.character(packageVersion("survival")),n_rows=nrow(rows),
  deviations=vec(c(sum(rows$leaves[rows$arm==1]),sum(rows$leaves[rows$arm==0]))),
  target_weight=vec(weight[rows$arm==1]),comparator_weight=vec(weight[rows$arm==0]),
  log_hr=as.numeric(coef(f)),robust_se=sqrt(as.numeric(f$var)),target=vec(curve(1)),comparator=vec(curve(0)))),"clones.json")
