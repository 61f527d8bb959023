# Coefficients held at a value, as offset() in R: writes fixed.json.
# Rscript make_fixed.R, in this folder.
source("json.R")
suppressMessages({library(survival);library(glmnet)})
exact<-coxph.control(eps=1e-14,iter.max=50)
lung<-read.csv("lung.csv")
lung<-lung[complete.cases(lung[,c("time","event","age","sex","ph.ecog","wt.loss")]),]
lung$o<-0.03*lung$age-0.4*lung$ph.ecog
new<-data.frame(age=c(50,70),sex=c(1,2),ph.ecog=c(0,2),wt.loss=c(0,10)); new$o<-0.03*new$age-0.4*new$ph.ecog
times<-c(5,100,365,700)
out<-list(versions=list(R=R.version.string,survival=as.character(packageVersion("survival")),glmnet=as.character(packageVersion("glmnet"))))
for(ties in c("breslow","efron")){
  f<-coxph(Surv(time,event==1)~sex+wt.loss+offset(o),lung,ties=ties,control=exact,x=TRUE)
  g<-coxph(Surv(time,event==1)~sex+wt.loss+offset(o),lung,ties=ties,control=exact,cluster=seq_len(nrow(lung)))
  each<-lapply(1:2,function(i){ s<-survfit(f,newdata=new[i,],conf.type="log-log"); k<-findInterval(times,s$time)+1
    list(surv=c(1,s$surv)[k],std_err=c(0,s$surv*s$std.err)[k]) })
  null<-coxph(Surv(time,event==1)~offset(o),lung,ties=ties)
  out[[ties]]<-list(coef=unname(coef(f)),variance=unname(f$var),robust=unname(g$var),loglik=f$loglik,
    score=f$score,wald=as.numeric(f$wald.test),aic=AIC(f),survival=t(sapply(each,`[[`,"surv")),std_err=t(sapply(each,`[[`,"std_err")),
    martingale=as.numeric(head(residuals(f,"martingale"),12)),dfbeta=unname(head(residuals(f,"dfbeta"),6)),
    zph=unname(cox.zph(f,transform="km",terms=FALSE)$table[,1]),
    null_loglik=null$loglik[1],null_martingale=as.numeric(head(residuals(null,"martingale"),12)))
}
X<-as.matrix(lung[,c("sex","wt.loss","age")]); lambda<-0.02
f<-glmnet(X,Surv(rank(lung$time,ties.method="first"),lung$event==1),family="cox",lambda=lambda,offset=-0.4*lung$ph.ecog,standardize=FALSE,thresh=1e-20,maxit=1e7)
out$lasso<-list(coef=as.numeric(coef(f)),lambda=lambda)
mgus2<-read.csv("mgus2.csv")
mgus2<-mgus2[complete.cases(mgus2[,c("age","mspike","hgb")]),]
mgus2$etime<-with(mgus2,if("etime" %in% names(mgus2)) etime else time)
mgus2$code<-factor(mgus2$event,0:2); mgus2$id<-seq_len(nrow(mgus2))
w<-finegray(Surv(etime,code)~age+mspike+hgb,mgus2,etype="1")
f<-coxph(Surv(fgstart,fgstop,fgstatus)~mspike+hgb+offset(0.02*age),w,weights=fgwt,ties="breslow",control=exact)
out$finegray<-list(coef=unname(coef(f)),loglik=f$loglik)
writeLines(json(out),"fixed.json")
