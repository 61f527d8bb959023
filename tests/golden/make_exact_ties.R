# Writes exact_ties.json: coxph(ties = "exact") and clogit. Run in this folder.
suppressMessages(library(survival))
json<-function(x){ # without a package: numbers with all digits, texts, lists and matrices
  if(is.list(x)) return(paste0("{",paste0('"',names(x),'":',vapply(x,json,""),collapse=","),"}"))
  if(is.matrix(x)) return(paste0("[",paste0(apply(x,1,json),collapse=","),"]"))
  one<-if(is.character(x)) paste0('"',x,'"') else ifelse(is.na(x),"null",formatC(x,digits=17,format="g"))
  if(length(one)==1) one else paste0("[",paste0(trimws(one),collapse=","),"]")
}
tight<-coxph.control(eps=1e-13,iter.max=100,toler.chol=1e-14)
told<-function(f,columns,...) list(columns=columns,coef=unname(f$coefficients),vcov=unname(f$var),loglik=f$loglik,
  score=f$score,wald=as.numeric(f$wald.test),n=f$n,nevent=f$nevent,...)
lung<-na.omit(read.csv("lung.csv")[,c("time","event","age","sex","ph.ecog")])
lung$month<-ceiling(lung$time/90)
vet<-read.csv("veteran.csv")
a<-coxph(Surv(time,event)~age+sex+ph.ecog,lung,ties="exact",control=tight)
s<-summary(survfit(a,newdata=data.frame(age=60,sex=1,ph.ecog=1),se.fit=FALSE),times=c(100,365,800))$surv
b<-coxph(Surv(month,event)~age+sex+ph.ecog,lung,ties="exact",control=tight)
c<-coxph(Surv(month,event)~age+ph.ecog+strata(sex),lung,ties="exact",control=tight)
late<-transform(lung,entry=pmax(0,time-1-7*(seq_along(time)%%40))) # few are tied: R lists all sets
d<-coxph(Surv(entry,time,event)~age+sex+ph.ecog,late,ties="exact",control=tight)
vet$week<-ceiling(vet$time/7)
e<-coxph(Surv(week,event)~karno+age+diagtime,vet,ties="exact",control=tight)
at<-c(0.01,-0.5,0.4)
g<-coxph(Surv(month,event)~age+sex+ph.ecog,lung,ties="exact",init=at,control=coxph.control(iter.max=0))
inf<-infert; inf$education<-as.integer(inf$education)
h<-clogit(case~spontaneous+induced+strata(stratum),inf,control=tight)
k<-clogit(case~spontaneous+induced+strata(education),inf,control=tight)
write(json(list(
  versions=list(R=paste(R.version$major,R.version$minor,sep="."),survival=as.character(packageVersion("survival"))),
  lung=told(a,c("age","sex","ph.ecog"),times=c(100,365,800),survival=s),
  lung_quarters=told(b,c("age","sex","ph.ecog")),
  lung_strata=told(c,c("age","ph.ecog")),
  lung_late=told(d,c("age","sex","ph.ecog")),
  veteran_weeks=told(e,c("karno","age","diagtime")),
  lung_quarters_at=list(coef=at,loglik=g$loglik[1]),
  infert=told(h,c("spontaneous","induced")),
  infert_education=told(k,c("spontaneous","induced")),
  infert_data=as.list(inf[,c("case","stratum","education","spontaneous","induced")]))),"exact_ties.json")
